"""moto's S3 server, one request at a time: its own threads look at a condition and then write, and two may do so at once.

Run by the environment of `make object-store-setup`: `python server.py PORT`.
"""

from __future__ import annotations

import sys

from moto.server import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import run_simple

if __name__ == "__main__":
    run_simple("127.0.0.1", int(sys.argv[1]), DomainDispatcherApplication(create_backend_app), threaded=False)
