"""The native dialect: everything that the server offers."""
