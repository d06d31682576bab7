"""The HTTP surface: parses requests, calls one service, shapes the answer. Rules live in core."""
