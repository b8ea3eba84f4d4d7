"""Programs that show Signalbook at work; not part of the package."""
