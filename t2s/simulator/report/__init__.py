"""From what an engine counted to what a user is told: results, stalls, deadlocks."""
