"""Reads what a request brings: bodies, forms and the arguments of its handler."""
