"""Files and what they say before anybody asks what it means."""
