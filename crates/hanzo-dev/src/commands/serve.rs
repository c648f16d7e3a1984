//! `hanzo-dev mcp` and `hanzo-mcp serve`: our tools and agents for other programs.

use std::convert::Infallible;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use hanzo_config::LoadInputs;
use hanzo_mcp::server::http::{self, HttpOptions, Refusal, Tls};
use hanzo_mcp::server::{Server, ServerOptions, stdio};
use hanzo_sandbox::memory;
use jiff::Timestamp;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::cli::{Global, ServeArgs};
use crate::commands::settings;
use crate::exit::{Exit, Failure};
use crate::output::Printer;
use crate::root::models::ModelNeed;
use crate::root::{self, Keep, Root, RootOptions, mcp, signals};

/// How long it takes until the start of a server is over, then its first work, then what follows that.
const SETTLED: [Duration; 3] = [Duration::from_secs(2), Duration::from_secs(4), Duration::from_secs(30)];
/// What HTTP clients have to show.
const TOKEN: &str = "HANZO_MCP_TOKEN";
/// How many refusals wait to be written.
const REFUSALS: usize = 64;

/// Serves until the client is gone or the process is asked to stop. Standard output belongs to the protocol alone.
pub fn run(global: &Global, args: &ServeArgs, printer: &mut Printer) -> Result<ExitCode, Failure> {
    match args.http {
        None => {
            memory::expect_one_thread();
            root::block_on_here(serve(global, args, printer))
        }
        Some(_) => root::block_on(serve(global, args, printer)),
    }
}

async fn serve(global: &Global, args: &ServeArgs, printer: &mut Printer) -> Result<ExitCode, Failure> {
    let inputs = settings::inputs(global, settings::trust(false))?;
    let mut options = options(&inputs, &root::data_dir(&inputs)?, args);
    // Before anything is started: whoever mistypes a file hears of it at once.
    let (http, refusals) = http_options(&inputs, args)?;
    let wanted =
        RootOptions { inputs, keep: Keep::Stored, program: "hanzo-dev mcp", wrap: None, instead: None };
    let root = Root::open_needing(wanted, ModelNeed::WhenAsked).await?;
    if args.with_servers {
        root.offer_servers(&mut options);
    }
    for notice in &root.notices {
        printer.warning(notice);
    }
    let server = Server::new(root.shared_client(), options);
    let mut stop = signals::stop(None)?;
    let exit = match args.http {
        None => tokio::select! {
            () = stdio::serve(server) => Exit::Ok,
            exit = &mut stop => exit,
            never = settle() => match never {},
        },
        Some(address) => {
            let failed = |error: &dyn std::fmt::Display| Failure::message(Exit::Failure, error);
            let listener = http::bind(address, &http).await.map_err(|error| failed(&error))?;
            let scheme = if http.tls.is_some() { "https" } else { "http" };
            printer.note(&format!("serving MCP at {scheme}://{}/mcp", listener.local_addr()?));
            let end = CancellationToken::new();
            let connect = move || server.connection();
            let serving = http::serve(listener, connect, http, end.clone());
            tokio::select! {
                done = serving => {
                    done?;
                    Exit::Ok
                }
                exit = &mut stop => {
                    end.cancel();
                    exit
                }
                never = report(refusals, printer) => match never {},
            }
        }
    };
    root.close().await;
    Ok(exit.into())
}

/// Who may come in over HTTP, and where those who may not are heard of.
fn http_options(
    inputs: &LoadInputs,
    args: &ServeArgs,
) -> Result<(HttpOptions, mpsc::Receiver<Refusal>), Failure> {
    let (refused, refusals) = mpsc::channel(REFUSALS);
    let mut http = HttpOptions::default();
    http.hosts.clone_from(&args.hosts);
    http.origins.clone_from(&args.origins);
    http.token = inputs.environment.get(TOKEN).filter(|token| !token.is_empty()).map(str::to_owned);
    http.rate = args.rate_limit;
    if let (Some(certificate), Some(key)) = (&args.tls_cert, &args.tls_key) {
        let tls = Tls::load(certificate, key);
        http.tls = Some(tls.map_err(|error| Failure::message(Exit::BadInput, error))?);
    }
    http.refused = Some(Arc::new(move |refusal: &Refusal| {
        // Should they come faster than they can be written, some are not.
        let _ = refused.try_send(*refusal);
    }));
    Ok((http, refusals))
}

/// Tells the owner who was turned away.
async fn report(mut refusals: mpsc::Receiver<Refusal>, printer: &mut Printer) -> Infallible {
    while let Some(refusal) = refusals.recv().await {
        printer.warning(&format!("{} {refusal}", Timestamp::now().strftime("%FT%TZ")));
    }
    std::future::pending().await
}

/// Gives back what the start took, once that is over: a server waits for most of its life.
async fn settle() -> Infallible {
    for wait in SETTLED {
        tokio::time::sleep(wait).await;
        // What is not given back is only memory.
        let _ = memory::give_back();
    }
    std::future::pending().await
}

fn options(inputs: &LoadInputs, data: &Path, args: &ServeArgs) -> ServerOptions {
    let mut options = ServerOptions::new(&inputs.workspace_root);
    options.agent.clone_from(&args.agent);
    options.posture = args.posture.map(Into::into);
    options.depth = mcp::depth(&inputs.environment);
    options.contexts = Some(data.join("contexts"));
    env!("HANZO_DEV_VERSION").clone_into(&mut options.version);
    options
}
