"""One file for each thing that is compared: records in, verdicts out. Nothing is run here."""
