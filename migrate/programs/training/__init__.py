"""What training loops are made of: steps, backward calls, phases, the windows of accumulation."""
