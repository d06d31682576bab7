"""What an operator does with a data folder without a server: back it up, restore it, examine it."""
