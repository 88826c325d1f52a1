"""What the window knows without Qt: chats, meter arithmetic, Markdown cutting, comparisons."""
