"""``.venvs/demo-model/bin/python -m local.demo_model --port 0``: serve until SIGTERM or Ctrl-C.

The first line of the output is ``listening on http://127.0.0.1:PORT/v1``; it is printed when requests are answered.
"""

from __future__ import annotations

import argparse
import os
import socket

from local.orphans import end_with_parent

HOST = "127.0.0.1"


def main() -> None:
    """Load the encoder, bind, announce, serve."""
    parser = argparse.ArgumentParser(prog="local.demo_model", description="Serve the offline demo model.")
    parser.add_argument("--port", type=int, default=0, help="0 takes a free one")
    port = parser.parse_args().port
    # The imports below wait for these: numpy's threads are fixed when it is imported. One thread makes vectors
    # reproducible and leaves the other core to the stack.
    os.environ["OPENBLAS_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"] = "1"
    import uvicorn  # type: ignore[import-not-found]  # noqa: PLC0415 - in .venvs/demo-model only; after the variables

    from local.demo_model.app import DemoModel, build_app  # noqa: PLC0415 - after the variables
    from local.demo_model.encoder import SentenceEncoder  # noqa: PLC0415 - after the variables

    end_with_parent()
    encoder = SentenceEncoder()
    encoder.encode(["ready"])  # loads the weights now instead of in the first request
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((HOST, port))
        listener.listen(128)
        print(f"listening on http://{HOST}:{listener.getsockname()[1]}/v1", flush=True)
        config = uvicorn.Config(
            build_app(DemoModel(encoder)),
            log_level="warning",
            access_log=False,
            lifespan="off",
            timeout_graceful_shutdown=2,
        )
        uvicorn.Server(config).run(sockets=[listener])


if __name__ == "__main__":
    main()
