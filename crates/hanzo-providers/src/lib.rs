//! Model vendors for hanzo-dev: OpenAI-compatible, Anthropic and recorded sessions behind one interface.
