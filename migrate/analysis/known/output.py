"""Whatever leaves the process: files, directories, figures, loggers. One process must do it (E4)."""

from migrate.analysis.known.table import Makes, Row
from migrate.analysis.roles import Role

ROWS: tuple[Row, ...] = tuple(
    Makes(name, Role.WRITER)
    for name in """torch.utils.tensorboard.SummaryWriter torch.utils.tensorboard.writer.SummaryWriter
    torch.utils.tensorboard.FileWriter tensorboardX.SummaryWriter tensorboardX.writer.SummaryWriter
    tensorflow.summary.FileWriter tensorflow.summary.create_file_writer csv.writer csv.DictWriter
    wandb.init neptune.init neptune.init_run comet_ml.Experiment comet_ml.OfflineExperiment aim.Run visdom.Visdom
    swanlab.init""".split()
)

PRINT = "builtins.print"
SAVE = "torch.save"

#: Calls that write; as statements of their own they are done by the main process.
WRITES = frozenset(
    """torch.save torch.jit.save os.makedirs os.mkdir os.remove os.removedirs os.rename os.rmdir os.symlink os.unlink
    os.replace shutil.copy shutil.copyfile shutil.copy2 shutil.copytree
    shutil.rmtree shutil.move json.dump pickle.dump yaml.dump joblib.dump
    numpy.save numpy.savez numpy.savetxt numpy.savez_compressed scipy.io.savemat scipy.io.wavfile.write
    torchvision.utils.save_image torchvision.utils.save_image_grid torchvision.io.write_png torchvision.io.write_jpeg
    torchvision.io.write_video torchaudio.save imageio.imwrite imageio.imsave imageio.mimsave imageio.mimwrite
    cv2.imwrite skimage.io.imsave soundfile.write safetensors.torch.save_file safetensors.torch.save_model
    sys.stdout.write sys.stdout.flush sys.stderr.write sys.stderr.flush
    wandb.log wandb.init wandb.finish wandb.save wandb.watch wandb.unwatch wandb.alert wandb.define_metric
    wandb.log_artifact wandb.summary.update wandb.config.update
    mlflow.log_metric mlflow.log_param mlflow.log_metrics mlflow.log_params mlflow.log_artifact mlflow.log_artifacts
    mlflow.log_figure mlflow.log_dict mlflow.log_text mlflow.set_tag mlflow.set_tags mlflow.set_experiment
    mlflow.start_run mlflow.end_run
    swanlab.log swanlab.init swanlab.finish""".split()
)
WRITING_PREFIXES = ("matplotlib.pyplot.", "pylab.", "seaborn.")
OPEN = "builtins.open"
WRITE_MODES = frozenset("wax+")
