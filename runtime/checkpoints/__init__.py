"""Checkpoints: folders that are either whole or not there, and that say what they hold.

layout      the names of files and folders (those of Accelerate)
snapshot    what belongs into a checkpoint, as parts: a name, a content, a format
formats     the two formats of files: safetensors and torch.save, written and read without copies
sink        a file that is written to the disk, or an error
digest      what a file's bytes are checked by
manifest    every file of a checkpoint with its size and digests, and what the run was
aside       the folder beside the others that a checkpoint is written in, and the rename that publishes it
crew        what the processes that save together tell each other
saver       a save from its beginning to its end, in the foreground or behind the training
choice      which checkpoint is loaded
contents    the files of it that a process loads, read once and checked on the way
restore     what is loaded from one
randomness  the states of the random number generators
sharded     state that is spread over the processes (torch.distributed.checkpoint)

A model's weights alone, in files of a limited size, are written by `runtime.save`.
"""
