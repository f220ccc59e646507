"""What users ask about compiled functions: reports, what varies from call to call, comparison with eager mode."""
