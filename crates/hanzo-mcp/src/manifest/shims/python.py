import importlib.util, inspect, json, os, sys

file, name, wanted = sys.argv[1:4]
# What a script prints is for people; the result alone goes where it is read.
say = os.fdopen(os.dup(1), "w", encoding="utf-8")
os.dup2(2, 1)
given = json.load(sys.stdin)
sys.path.insert(0, os.path.dirname(file))
spec = importlib.util.spec_from_file_location("handler", file)
module = importlib.util.module_from_spec(spec)
try:
    spec.loader.exec_module(module)
    names = [wanted] if wanted else [name.replace("-", "_"), "handler", "run", "main"]
    handler = next((getattr(module, name) for name in names if callable(getattr(module, name, None))), None)
    if handler is None:
        raise LookupError("the script has no function called " + ", ".join(names))
    result = handler(**given)
    if inspect.isawaitable(result):
        import asyncio

        async def wait():
            return await result

        result = asyncio.run(wait())
except Exception as error:
    sys.stdout.flush()
    print(f"{type(error).__name__}: {error}", file=sys.stderr)
    sys.exit(1)
json.dump(result, say)
say.close()
sys.stdout.flush()
