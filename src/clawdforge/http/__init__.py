"""The HTTP surface: parses requests, calls one service, shapes the reply. The rules are in core."""
