"""What the judge and the processes in a sandbox share: values on the wire, running cells, untrusted text."""
