"""`python -m tests.support.model --port 0`: run the endpoint until it is interrupted."""

import argparse
from contextlib import suppress

from tests.support.model import script
from tests.support.model.endpoint import running


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m tests.support.model",
        description="A scripted model on loopback: Anthropic Messages, OpenAI Chat and Responses, Gemini.",
        epilog=script.__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--port", type=int, default=0, help="0 takes a free one")
    with running(parser.parse_args().port) as endpoint, suppress(KeyboardInterrupt):
        print(endpoint.url, flush=True)
        endpoint.wait()


if __name__ == "__main__":
    main()
