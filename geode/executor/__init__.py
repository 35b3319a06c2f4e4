"""The boundary of execution: nothing happens before its authority was checked."""
