"""What an operator does with a data folder: back it up, restore it, have it looked at; without a server."""
