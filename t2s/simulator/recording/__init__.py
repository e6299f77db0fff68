"""Windows of runs as files for other tools: timelines for Perfetto, waveforms as VCD."""
