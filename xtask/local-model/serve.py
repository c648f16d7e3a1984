"""Serves a model file over OpenAI's protocol: serve.py MODEL PORT. Ends with its standard input."""

import sys

import xllamacpp

parameters = xllamacpp.CommonParams()
parameters.model.path = sys.argv[1]
parameters.n_ctx = 8192
parameters.port = int(sys.argv[2])
server = xllamacpp.Server(parameters)
print("ready", flush=True)
sys.stdin.read()
