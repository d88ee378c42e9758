"""Whatever leaves the process: files, directories, figures, loggers. One process must do it (E4)."""

from migrate.analysis.known.table import Makes, Row
from migrate.analysis.roles import Role

ROWS: tuple[Row, ...] = tuple(
    Makes(name, Role.WRITER)
    for name in """torch.utils.tensorboard.SummaryWriter torch.utils.tensorboard.writer.SummaryWriter
    torch.utils.tensorboard.FileWriter tensorboardX.SummaryWriter tensorboardX.writer.SummaryWriter
    tensorboard.SummaryWriter tensorboardX.FileWriter tensorflow.compat.v1.summary.FileWriter
    tensorflow.summary.FileWriter tensorflow.summary.create_file_writer csv.writer csv.DictWriter
    wandb.init neptune.init neptune.init_run comet_ml.Experiment comet_ml.OfflineExperiment aim.Run visdom.Visdom
    swanlab.init tensorboard_logger.Logger tensorboard_logger.tensorboard_logger.Logger""".split()
)

PRINT = "builtins.print"
SAVE = "torch.save"

#: Whether a file or folder is there, and the methods by which a path says so of itself.
EXISTS = frozenset({"os.path.exists", "os.path.isfile", "os.path.isdir"})
EXISTS_ITSELF = frozenset({"exists", "is_dir", "is_file"})
#: Calls that write; as statements of their own they are done by the main process.
WRITES = frozenset(
    """torch.save torch.jit.save os.makedirs os.mkdir os.remove os.removedirs os.rename os.rmdir os.symlink os.unlink
    os.replace os.link shutil.copy shutil.copyfile shutil.copy2 shutil.copytree
    shutil.rmtree shutil.move shutil.make_archive json.dump pickle.dump yaml.dump joblib.dump
    numpy.save numpy.savez numpy.savetxt numpy.savez_compressed scipy.io.savemat scipy.io.wavfile.write
    torchvision.utils.save_image torchvision.utils.save_image_grid torchvision.io.write_png torchvision.io.write_jpeg
    torchvision.io.write_video torchaudio.save librosa.output.write_wav soundfile.write pypianoroll.write
    imageio.imwrite imageio.imsave imageio.mimsave imageio.mimwrite imageio.v2.imwrite imageio.v2.imsave
    imageio.v2.mimsave imageio.v2.mimwrite imageio.v3.imwrite cv2.imwrite skimage.io.imsave scipy.misc.imsave
    scipy.io.mmwrite scipy.sparse.save_npz nibabel.save SimpleITK.WriteImage tifffile.imwrite tifffile.imsave
    matplotlib.image.imsave networkx.write_gpickle skvideo.io.vwrite open3d.io.write_point_cloud
    omegaconf.OmegaConf.save yaml.safe_dump toml.dump ujson.dump simplejson.dump sklearn.externals.joblib.dump
    cloudpickle.dump _pickle.dump cPickle.dump faiss.write_index safetensors.torch.save_file
    safetensors.torch.save_model
    tqdm.tqdm.write tqdm.auto.tqdm.write tqdm.std.tqdm.write tqdm.notebook.tqdm.write
    sys.stdout.write sys.stdout.flush sys.stderr.write sys.stderr.flush
    wandb.log wandb.init wandb.finish wandb.save wandb.watch wandb.unwatch wandb.alert wandb.define_metric
    wandb.log_artifact wandb.summary.update wandb.config.update
    mlflow.log_metric mlflow.log_param mlflow.log_metrics mlflow.log_params mlflow.log_artifact mlflow.log_artifacts
    mlflow.log_figure mlflow.log_dict mlflow.log_text mlflow.set_tag mlflow.set_tags mlflow.set_experiment
    mlflow.start_run mlflow.end_run
    mlflow.pytorch.log_model mlflow.pytorch.save_model mlflow.log_input mlflow.set_tracking_uri
    dill.dump torch.onnx.export rich.print rich.print_json pprint.pprint pprint.pp traceback.print_exc
    swanlab.log swanlab.init swanlab.finish
    tensorboard_logger.configure tensorboard_logger.log_value tensorboard_logger.log_images
    tensorboard_logger.log_histogram""".split()
)
#: Methods of objects that print, or write what they have printed, by what makes these.
PRINTERS = {
    "pprint.PrettyPrinter": frozenset({"pprint"}),
    "rich.console.Console": frozenset(
        "print print_json print_exception log rule line out save_html save_svg save_text".split()
    ),
    "rich.get_console": frozenset("print print_json print_exception log rule line out".split()),
}
#: What brings something from the network, which a program keeps in a file.
FETCHES = frozenset(
    """urllib.request.urlretrieve urllib.request.urlopen requests.get wget.download gdown.download
    six.moves.urllib.request.urlretrieve six.moves.urllib.request.urlopen
    torch.hub.download_url_to_file torchvision.datasets.utils.download_url
    torchvision.datasets.utils.download_and_extract_archive""".split()
)
#: Functions that put files where all processes read them, whatever was there before.
BRINGS = frozenset(
    """urllib.request.urlretrieve six.moves.urllib.request.urlretrieve wget.download gdown.download
    torch.hub.download_url_to_file shutil.unpack_archive
    torchvision.datasets.utils.download_url torchvision.datasets.utils.extract_archive
    torchvision.datasets.utils.download_and_extract_archive""".split()
)
#: Methods and functions that take files out of an archive.
UNPACKS = frozenset({"extractall", "unpack_archive"})
#: Those whose first argument is not there afterwards, and the method of a path after which it is not.
REMOVES = frozenset({"os.remove", "os.unlink", "os.rename", "os.replace", "shutil.move", "shutil.rmtree"})
REMOVES_ITSELF = "unlink"
#: The methods of a path after which its file is under another one.
MOVES_ITSELF = frozenset({"rename", "replace"})
#: Those of a library's functions that give the path under which the file is then.
GIVES_PATH = frozenset(
    {"shutil.copy", "shutil.copy2", "shutil.copyfile", "shutil.copytree", "shutil.move", "shutil.make_archive"}
)
#: What makes a path that has such methods.
PATH_CLASSES = frozenset({"pathlib.Path", "pathlib.PosixPath", "pathlib.WindowsPath"})
#: What only hastens what was written; nothing, where nothing was.
FLUSHES = frozenset({"sys.stdout.flush", "sys.stderr.flush"})
WRITING_PREFIXES = ("matplotlib.pyplot.", "matplotlib.animation.", "pylab.", "seaborn.", "loguru.logger.")
#: What only says how figures will look, or that they show at once: nobody sees anything of it.
STYLES = frozenset(
    """matplotlib.pyplot.rc matplotlib.pyplot.rcdefaults matplotlib.pyplot.switch_backend matplotlib.pyplot.set_cmap
    matplotlib.pyplot.style.use matplotlib.pyplot.rcParams.update seaborn.set seaborn.set_theme seaborn.set_style
    seaborn.set_context seaborn.set_palette seaborn.set_color_codes
    seaborn.color_palette seaborn.reset_defaults matplotlib.pyplot.ion matplotlib.pyplot.ioff""".split()
)
#: Functions of plotting libraries that let a figure out of the process; all others only change it.
SHOWS = frozenset(f"{library}.{name}" for library in ("matplotlib.pyplot", "pylab") for name in ("savefig", "show"))
#: What gives the figure or the axes that are drawn on.
FIGURES = frozenset(f"{library}.{name}" for library in ("matplotlib.pyplot", "pylab") for name in ("gcf", "gca"))
#: What closes or empties a figure.
CLOSES = frozenset({"matplotlib.pyplot.close", "matplotlib.pyplot.clf", "matplotlib.pyplot.cla", "pylab.close"})
OPENS = frozenset({"builtins.open", "io.open", "codecs.open"})
#: Packed files, by a mode that begins as theirs does.
OPENS_PACKED = frozenset({"tarfile.open", "tarfile.TarFile", "zipfile.ZipFile", "gzip.open", "bz2.open", "lzma.open"})
#: Files of arrays, whose items are set: `file["loss"] = losses`.
OPENS_ARRAYS = frozenset({"h5py.File"})
WRITE_MODES = frozenset("wax+")
MODES = WRITE_MODES | frozenset("rbtU")
#: Files in memory, which are each process's own.
BUFFERS = frozenset({"io.BytesIO", "io.StringIO"})
#: What is called on a file.
FILE_METHODS = frozenset(
    "write writelines flush close truncate writerow writerows writeheader add addfile writestr "
    "create_dataset create_group".split()
)
ROW_WRITERS = frozenset({"csv.writer", "csv.DictWriter"})
#: Methods that write, whatever library made the object.
WRITING_METHODS = frozenset(
    """savefig to_csv to_excel to_pickle to_parquet to_feather to_hdf to_json to_json_file to_filename tofile
    save_pretrained save_vocabulary write_text write_bytes mkdir unlink touch rmdir symlink_to hardlink_to
    write_html write_image""".split()
)
#: Whose objects have a `save` that writes a file.
SAVED_BY_METHOD = tuple(
    f"{library}."
    for library in "PIL torch.jit torchvision.transforms tokenizers scipy.misc mido openpyxl xlwt gensim".split()
)
#: Bars that no loop runs over.
MORE_BARS = frozenset({"rich.progress.Progress"})
#: Bars that cannot be switched off, and are drawn by what is called on them.
DRAWN_BARS = frozenset(
    """progress.bar.Bar progress.bar.ChargingBar progress.bar.FillingCirclesBar progress.bar.FillingSquaresBar
    progress.bar.IncrementalBar progress.bar.PixelBar progress.bar.ShadyBar progress.spinner.Spinner
    progress.counter.Counter progressbar.ProgressBar enlighten.Counter alive_progress.alive_bar""".split()
)
#: How far a bar is.
COUNTS = frozenset({"n", "last_print_n", "format_dict", "total", "start_t"})
#: What starts a run of a service, and takes `mode="disabled"`; and what is asked of it afterwards.
SWITCHED = frozenset({"wandb.init", "swanlab.init"})
ASKED = frozenset({"wandb.config", "wandb.run", "swanlab.config"})
#: Log files that are emptied when they are opened, by the name of the argument that says so.
LOG_FILES = {"logging.basicConfig": "filemode", "logging.FileHandler": "mode"}
INPUT = "builtins.input"
#: What has the system run another program.
_RUNNING = "run call check_call check_output getoutput getstatusoutput Popen".split()
COMMANDS = frozenset({"os.system", "os.popen", *(f"subprocess.{n}" for n in _RUNNING)})
#: What runs a model once and prints its layers.
SUMMARIES = frozenset({"torchsummary.summary", "torchsummaryX.summary", "torchinfo.summary"})
#: The names of the arguments that say which file is read or written: `torch.save(obj=state, f=path)`.
PATHS = (
    *"f file fname filename filepath fp path uri dir directory save_directory".split(),
    *"path_or_buf filepath_or_buffer pretrained_model_name_or_path".split(),
)
#: Functions whose first argument is a file or folder that they read, or enter.
READERS = frozenset(
    """torch.load torch.jit.load numpy.load numpy.loadtxt numpy.genfromtxt numpy.fromfile numpy.memmap joblib.load
    pandas.read_csv pandas.read_pickle pandas.read_json pandas.read_table pandas.read_excel pandas.read_feather
    pandas.read_parquet pandas.read_hdf scipy.io.loadmat
    sklearn.externals.joblib.load scipy.sparse.load_npz omegaconf.OmegaConf.load nibabel.load os.listdir os.scandir
    os.chdir os.stat os.path.getsize os.path.getmtime glob.glob PIL.Image.open torchvision.io.read_image
    safetensors.torch.load_file onnx.load
    onnxruntime.InferenceSession""".split()
)
#: What reads an image that the program may have drawn.
IMAGE_READERS = frozenset(
    """PIL.Image.open torchvision.io.read_image imageio.imread imageio.v2.imread imageio.v3.imread skimage.io.imread
    matplotlib.pyplot.imread matplotlib.image.imread cv2.imread""".split()
)
FOLDERS = frozenset({"os.makedirs", "os.mkdir"})
#: What differs from process to process: the clock, and what is drawn apart from the seeded streams.
MADE_UP = frozenset(
    """datetime.datetime.now datetime.datetime.today datetime.datetime.utcnow time.time time.time_ns time.strftime
    time.localtime time.ctime time.asctime time.gmtime uuid.uuid1 uuid.uuid4 os.getpid tempfile.mkdtemp
    tempfile.mktemp secrets.token_hex secrets.token_urlsafe""".split()
)
#: What tells which files and folders are there.
LISTING = frozenset("os.listdir os.scandir glob.glob glob.iglob os.walk".split())
#: What looks into a folder that its first argument names.
LOOKS = LISTING | frozenset(
    f"torchvision.datasets.{name}" for name in ("ImageFolder", "DatasetFolder", "folder.ImageFolder")
)
#: What puts a file where its second argument says.
PATH_SECOND = frozenset(
    """shutil.copy shutil.copyfile shutil.copy2 shutil.copytree os.link os.symlink
    torchvision.utils.save_image pickle.dump joblib.dump sklearn.externals.joblib.dump omegaconf.OmegaConf.save
    nibabel.save SimpleITK.WriteImage faiss.write_index""".split()
)
#: Where its first argument says: what makes folders writes no file, and a checkpoint is read under its own path.
PATH_FIRST = frozenset(
    """numpy.save numpy.savez numpy.savez_compressed numpy.savetxt scipy.io.savemat soundfile.write torchaudio.save
    scipy.io.wavfile.write matplotlib.pyplot.savefig torchvision.io.write_png torchvision.io.write_jpeg cv2.imwrite
    skimage.io.imsave scipy.misc.imsave imageio.imwrite imageio.imsave imageio.v2.imwrite imageio.v2.imsave
    imageio.v3.imwrite scipy.sparse.save_npz tifffile.imwrite tifffile.imsave matplotlib.image.imsave""".split()
)
