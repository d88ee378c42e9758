"""Starting a script: on one process by becoming it, on several through torch elastic.

What was asked for:

    option      what a setting is; options is the table of all of them, readers read their values
    surroundings, configfile, accelerate_keys    what SLURM, MPI and torchrun say, and what stands in a file
    settings    arguments > environment > file > what is found
    request     from settings to a spec
    explain     settings with their origins, or torchrun's command, instead of a launch
    configtext, configwrite                      `runtime config`

The launch:

    start       the steps of a launch, in order
    spec        what was asked for
    refusals    what of it cannot be started, and which settings exclude each other
    machine     what this machine has
    share       how many processes run here, and with how many threads
    env         the variables the processes see; the only writer of an environment
    single      one process: this one turns into the script
    meeting     where several machines meet
    logs        where the lines of the processes go
    agent       several: torch elastic starts, watches and stops them
    forked      on the CPU: when workers are forks of a process that has imported torch, and becoming its launcher
    early       whether a script sets variables that torch reads when it is loaded
    fork_server that launcher, and the process that forks
    fork_client what torch elastic asks it
    child       what a worker runs: the script, and a note if it fails
    notebook    the same for a function of a notebook
    parcel      how a function and its result travel
    cell        what such a worker runs
    selftest    what `runtime test` runs
    failure     which of the failed processes was the cause

Nothing here imports torch before processes have to be counted on a machine with a GPU, or started by elastic.
"""
