"""Programs that are not trusted: started, contained, bounded, and ended with everything they started."""
