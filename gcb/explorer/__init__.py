"""`gcb explore`: a web page on which a visitor conditions an agent on an example or a goal and watches it act.

The server keeps no state per visitor. A scene is a seed and a few options, an example likewise, and every request
carries both. Visitors therefore cannot disturb each other, a page can be reloaded or shared by its URL, and the
server's memory is bounded by the sizes of its caches.
"""
