#!/usr/bin/env bash
# Two machines with four GPUs each: sbatch slurm.sh
#SBATCH --job-name=train
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1        # one launcher on each machine, which starts a process for each GPU
#SBATCH --gpus-per-node=4
#SBATCH --cpus-per-task=32
#SBATCH --time=12:00:00
#SBATCH --signal=TERM@120          # two minutes before the end: a script that asks check_termination() saves and leaves
#SBATCH --output=%x-%j.log
set -euo pipefail

export SRUN_CPUS_PER_TASK="${SLURM_CPUS_PER_TASK:-1}"  # srun does not take it over from sbatch by itself

# No options: srun tells the launcher how many machines there are, which one this is and where they meet.
# --kill-on-bad-exit: where one machine fails, the job does not wait for the others.
exec srun --kill-on-bad-exit=1 runtime launch train.py --lr 0.1
