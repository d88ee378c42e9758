"""What all processes must do together or alike, and where they part."""
