"""What gives a program the settings of its user."""

#: Objects with a name for each setting, which the program may set, too; those of files are read by some of them.
HOLDERS = frozenset(
    """types.SimpleNamespace argparse.Namespace easydict.EasyDict munch.Munch munch.munchify addict.Dict box.Box
    dotmap.DotMap omegaconf.OmegaConf.create ml_collections.ConfigDict yacs.config.CfgNode fvcore.common.config.CfgNode
    attrdict.AttrDict tyro.cli simple_parsing.parse pyrallis.parse draccus.parse omegaconf.OmegaConf.load
    omegaconf.OmegaConf.structured omegaconf.OmegaConf.merge omegaconf.OmegaConf.from_cli""".split()
)
#: What reads a text that people write: dictionaries, or lists, of what stands there.
READERS = frozenset(
    """json.load json.loads yaml.load yaml.safe_load yaml.full_load toml.load toml.loads tomllib.load tomllib.loads
    tomli.load tomli.loads json5.load json5.loads commentjson.load commentjson.loads""".split()
)
