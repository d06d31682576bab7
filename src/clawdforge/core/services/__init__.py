"""What is offered: one service for each kind of request. Every method takes the app first."""
