"""A web page on which a visitor tells an agent what to do by example, and watches it.

The server remembers nothing of its visitors. A scene is a number and a few choices, an example likewise, and every
request brings both: so visitors cannot disturb each other, a page can be reloaded or shared by its address, and what
the server holds is bounded by what it chooses to keep at hand.
"""
