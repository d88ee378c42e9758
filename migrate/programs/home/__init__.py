"""Where the objects of a program have names, and how its functions get at the accelerator."""
