"""Whatever leaves the process: files, directories, figures, loggers. One process must do it (E4)."""

from migrate.analysis.known.table import Makes
from migrate.analysis.roles import Role

MAKES = (
    Makes("torch.utils.tensorboard.SummaryWriter", Role.WRITER),
    Makes("torch.utils.tensorboard.writer.SummaryWriter", Role.WRITER),
    Makes("tensorboardX.SummaryWriter", Role.WRITER),
    Makes("csv.writer", Role.WRITER),
    Makes("csv.DictWriter", Role.WRITER),
)

PRINT = "builtins.print"
SAVE = "torch.save"

#: Calls that write; as statements of their own they are done by the main process.
WRITES = frozenset(
    """torch.save os.makedirs os.mkdir os.remove os.rename os.rmdir os.unlink os.replace
    shutil.copy shutil.copyfile shutil.copy2
    shutil.rmtree shutil.move json.dump pickle.dump yaml.dump joblib.dump
    numpy.save numpy.savez numpy.savetxt numpy.savez_compressed
    torchvision.utils.save_image torchvision.utils.save_image_grid imageio.imwrite imageio.mimsave cv2.imwrite
    sys.stdout.write sys.stdout.flush sys.stderr.write sys.stderr.flush
    wandb.log wandb.init wandb.finish wandb.save wandb.watch wandb.summary.update mlflow.log_metric mlflow.log_param
    mlflow.log_metrics mlflow.log_params mlflow.log_artifact""".split()
)
WRITING_PREFIXES = ("matplotlib.pyplot.", "pylab.", "seaborn.")
OPEN = "builtins.open"
WRITE_MODES = frozenset("wax+")
