"""The interactive page of posenc explore: its data, the library in WebAssembly, and its script."""
