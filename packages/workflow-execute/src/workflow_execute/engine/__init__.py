"""The engine: starts, resumes, forks, stops, answers and replays threads on a store."""
