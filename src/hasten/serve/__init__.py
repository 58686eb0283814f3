"""An HTTP server for models, cascades and adopted programs (extra `serve`), and its page."""
