"""The half of the tracer that runs inside a traced process.

The folder is copied into target environments as a package of its own: it uses the standard library
and torch alone, imports itself relatively, and keeps to the syntax of Python 3.9.

plugin          how an engine's plug-in loader starts it
tracer          installs and removes everything
watch           knows the running captures and names what broke one
captures, suspects, joins    one capture; what raised in it; which side streams were joined
calls, names    a call as it is written down: what, where, by which thread
status          asks the driver how a stream's capture stands
profile_hook, operators, new_threads, raises, methods, events    where calls are seen
arguments       which event a line hands to a method that cannot be wrapped
guard, journal  own faults end here; what is written
"""
