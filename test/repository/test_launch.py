# SPDX-License-Identifier: Apache-2.0
"""The launch files: with the real launch where it is installed, else as far as a stand-in for it goes."""

import importlib.util
import sys
from dataclasses import fields
from types import ModuleType, SimpleNamespace

import pytest
from source_tree import ROOT

from mbse_ros.errors import DescriptionError, MbseError, SettingError
from mbse_ros.nodes.graphs.graph import parse_arguments, refuse_misspelt, word
from mbse_ros.nodes.graphs.linkage_graph import LinkageArguments, linkage_graph
from mbse_ros.nodes.graphs.machine_graph import MachineArguments, machine_graph
from mbse_ros.nodes.graphs.run_graph import BAD_START

GRAPHS = {'machine': (MachineArguments, machine_graph), 'crane': (MachineArguments, machine_graph),
          'linkage': (LinkageArguments, linkage_graph)}
MODULES = {'launch': ('Action', 'LaunchContext', 'LaunchDescription'), 'launch_ros': (),
           'launch_ros.actions': ('Node',),
           'launch.actions': ('DeclareLaunchArgument', 'LogInfo', 'OpaqueFunction', 'Shutdown', 'TimerAction'),
           'launch.events': (), 'launch.events.process': ('ProcessExited',),
           'launch.substitutions': ('LaunchConfiguration',)}

SHARED = 'mbse_ros.nodes.graphs.launching'


class Context(dict):
    """Launch configurations, with what was typed."""

    argv, is_shutdown = (), False


class Recorded(SimpleNamespace):
    """An action of launch that only remembers its arguments."""

    def __init__(self, *args, **more):
        super().__init__(args=args, **more)

    def perform(self, context):
        """Value of a launch configuration."""
        return context[self.args[0]]


@pytest.fixture(params=sorted(GRAPHS))
def graph(request):
    return request.param


def load(graph):
    spec = importlib.util.spec_from_file_location(f'{graph}_launch', ROOT / 'launch' / f'{graph}.launch.py')
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def stand_in(graph, monkeypatch):
    """The launch file over a stand-in for launch."""
    for name, classes in MODULES.items():
        module = ModuleType(name)
        for item in classes:
            setattr(module, item, type(item, (Recorded,), {}))
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.delitem(sys.modules, SHARED, raising=False)
    yield load(graph)
    sys.modules.pop(SHARED)


def test_arguments_are_those_of_the_graph(graph, stand_in):
    *declared, _ = stand_in.generate_launch_description().args[0]
    assert [(d.args[0], d.default_value) for d in declared] == [
        (item.name, word(item.default)) for item in fields(GRAPHS[graph][0])]
    assert all(d.description for d in declared)


@pytest.mark.parametrize('given', [{}, {'simulate': 'false', 'rviz': 'true', 'namespace': 'a'}, {'final': '1'}])
def test_processes_are_those_of_the_graph(graph, stand_in, given, monkeypatch):
    monkeypatch.setattr('mbse_ros.nodes.graphs.run_graph.shutil', SimpleNamespace(which=lambda name: f'/bin/{name}'))
    kind, make = GRAPHS[graph]
    given = {{'final': {'linkage': 'duration'}.get(graph, 'cycles')}.get(key, key): given[key] for key in given}
    context = Context({item.name: word(item.default) for item in fields(kind)} | given)
    nodes = stand_in.generate_launch_description().args[0][-1].function(context)
    processes = make(parse_arguments(given, kind)).processes
    assert [(n.package, n.executable, n.name, n.namespace, n.parameters) for n in nodes] == [
        (p.package, p.executable, None if p.parts else p.name, p.namespace,
         [dict(p.parameters)] if p.parameters else []) for p in processes]
    for n, p in zip(nodes, processes):
        assert all(f'{name}:valve:="described"' in n.arguments for name in p.parts)
    assert [type(n.on_exit).__name__ for n in nodes] == [
        'TimerAction' if p.final else 'function' if p.respawn else 'NoneType' for p in processes]


@pytest.mark.parametrize('own, namespace', [('', '/site/a'), ('arm/b', '/site/a/arm/b'), ('/c', '/c')])
def test_a_namespace_that_a_parent_pushes_is_that_of_frames_and_topics_too(graph, stand_in, own, namespace):
    """Machines would share the frames of one tree, and RViz listen to topics that nobody publishes."""
    kind, make = GRAPHS[graph]
    options = {item.name: item.default for item in fields(kind)} | {'namespace': own} | (
        {'outputs': True} if kind is MachineArguments else {})
    context = Context({name: word(value) for name, value in options.items()})
    context.launch_configurations = {'ros_namespace': 'site/a'}
    found = stand_in.generate_launch_description().args[0][-1].function(context)
    expected = make(kind(**options | {'namespace': namespace})).processes
    assert [(node.namespace, node.parameters, node.remappings) for node in found] == [
        (process.namespace, [dict(process.parameters)] if process.parameters else [], list(process.remappings.items()))
        for process in expected]
    assert {node.namespace for node in found} == {namespace}


def test_without_rviz_nothing_is_started(graph, stand_in, monkeypatch):
    monkeypatch.setattr('mbse_ros.nodes.graphs.run_graph.shutil', SimpleNamespace(which=lambda name: None))
    context = Context({item.name: word(item.default) for item in fields(GRAPHS[graph][0])} | {'rviz': 'true'})
    with pytest.raises(MbseError, match='rviz2 is not installed here'):
        stand_in.generate_launch_description().args[0][-1].function(context)


def test_files_remappings_and_frames_get_to_the_nodes(graph, stand_in, tmp_path):
    """RViz has neither; a file stands behind the arguments, which it overrides."""
    file = tmp_path / 'tuning.yaml'
    file.write_text('{}')
    given = {'params_file': f'{file} {file}', 'remap': 'a:=b c:=/d', 'frame': 'base_link',
             'sensor_reliability': 'best_effort'}
    context = Context({item.name: word(item.default) for item in fields(GRAPHS[graph][0])} | given)
    nodes = stand_in.generate_launch_description().args[0][-1].function(context)
    assert nodes and all(n.remappings == [('a', 'b'), ('c', '/d')] for n in nodes)
    assert all(n.parameters[-2:] == [str(file)] * 2 for n in nodes)
    kind, make = GRAPHS[graph]
    processes = make(parse_arguments(given, kind)).processes
    values = [own for p in processes for own in (p.parts or {'': p.parameters}).values()]
    assert {own['frame_id'] for own in values if 'frame_id' in own} == {'base_link'}
    assert {own['sensor_reliability'] for own in values if 'sensor_reliability' in own} == {'best_effort'}


@pytest.mark.parametrize('name, value, text', [
    ('params_file', 'no.yaml', 'a file'), ('preset', 'print', 'paper'), ('remap', 'a:=', 'from:=to'),
    ('remap', 'joints', 'from:=to'), ('sensor_reliability', 'x', 'auto')])
def test_wrong_files_and_remappings_are_refused(name, value, text):
    for kind, make in GRAPHS.values():
        with pytest.raises(SettingError, match=f'{name}.*{text}'):
            make(parse_arguments({name: value}, kind))


def test_without_the_drawing_nobody_waits_for_it():
    def readers(**given):
        processes = machine_graph(parse_arguments({'composed': 'false', **given}, MachineArguments)).processes
        return {p.name: p.parameters['wait_subscribers'] for p in processes if 'wait_subscribers' in p.parameters}

    with_it, without = readers(), readers(visualization='false')
    assert 'visualization_node' not in without
    assert {name: with_it[name] - without[name] for name in without} == {
        'interpolation_node': 0, 'observer_node': 1, 'payload_node': 1, 'plant_node': 0}


def test_a_mechanism_without_sensors_is_refused():
    with pytest.raises(SettingError, match='n_four_bar.*a mechanism with sensors'):
        linkage_graph(LinkageArguments(mechanism='n_four_bar:2'))


def test_a_simulated_arm_is_refused_before_anything_starts():
    with pytest.raises(SettingError, match='simulate: got True, expected false: ur10e has no cylinders'):
        machine_graph(MachineArguments(machine='ur10e'))
    assert machine_graph(MachineArguments(machine='ur10e', simulate=False)).processes


def test_what_no_node_could_start_with_is_refused_before():
    with pytest.raises(DescriptionError, match=r"nonholonomic: got \['blade'\].*filters"):
        linkage_graph(LinkageArguments(mechanism='chaplygin_sleigh'))
    with pytest.raises(SettingError, match='payload: got 5000.0, expected from 0.0 to 1000.0 kg'):
        machine_graph(MachineArguments(payload=5000.0))
    assert machine_graph(MachineArguments(payload=1000.0)).processes
    assert machine_graph(MachineArguments(payload=5000.0, simulate=False)).processes     # of the simulation alone


def test_what_dies_is_started_again_but_not_what_cannot_start(graph, stand_in):
    kind, _ = GRAPHS[graph]
    context = Context({item.name: word(item.default) for item in fields(kind)})
    first = stand_in.generate_launch_description().args[0][-1].function(context)[0]
    timer, = first.on_exit(SimpleNamespace(returncode=-9), context)
    again, = timer.actions
    assert (again.name, again.parameters) == (first.name, first.parameters) and timer.period > 0
    line, = first.on_exit(SimpleNamespace(returncode=BAD_START), context)
    assert first.executable in line.msg and 'not started again' in line.msg
    assert type(line).__name__ == 'LogInfo'
    context.is_shutdown = True
    assert first.on_exit(SimpleNamespace(returncode=-15), context) is None


def test_a_misspelt_argument_is_refused(graph, stand_in):
    kind, _ = GRAPHS[graph]
    context = Context({item.name: word(item.default) for item in fields(kind)})
    context.argv = ['record:=bag', 'robot:=r2', 'simulte:=false']
    with pytest.raises(SettingError, match='simulte.*false.*did you mean simulate'):
        stand_in.generate_launch_description().args[0][-1].function(context)


# Arguments that bringups of robots usually have; many are nearly one of ours.
USUAL = """simulation frame_id output sim use_sim sim_time namespace_ name_space use_namespace rviz2 use_rviz
    rviz_config launch_rviz record_bag recording rosbag bag params_files param_file params config_file log_level robot
    robot_name robot_model model world headless gui debug use_composition composition container_name autostart_
    auto_start respawn use_respawn lifecycle map frames base_frame remaps remapping cycle_time durations timeout seeds
    port host display_name displays source payloads machines mechanisms sensor sensors_ estimators rates motions
    smooth lags noise visualize visualisation outputs_ scales tf_prefix publish_tf joint_states""".split()


@pytest.fixture
def parent_event(graph, stand_in):
    """The stand-in's processes with the locals that a launch service gives: who included our file, with which words."""
    def processes(words, top, location):
        kind, _ = GRAPHS[graph]
        context = Context({item.name: word(item.default) for item in fields(kind)})
        context.argv, ours = words, str(ROOT / 'launch' / f'{graph}.launch.py')
        included = [SimpleNamespace(launch_description_source=SimpleNamespace(location=location or ours),
                                    launch_arguments=[text.split(':=') for text in words])]
        event = SimpleNamespace(launch_description=SimpleNamespace(entities=top + included))
        context.get_locals_as_dict = lambda: {'event': event, 'current_launch_file_path': ours}
        return stand_in.generate_launch_description().args[0][-1].function(context)
    return processes


@pytest.mark.parametrize('top, location', [([], '/robot/bringup.launch.py'), (['an argument of a parent'], None)])
def test_arguments_of_a_parent_are_nobodys_business(parent_event, top, location):
    assert parent_event([f'{name}:=x' for name in USUAL], top, location)


def test_a_misspelt_argument_is_refused_where_ours_is_the_file_that_is_launched(parent_event):
    with pytest.raises(SettingError, match='simulte.*did you mean simulate'):
        parent_event(['simulte:=false', 'robot:=r2'], [], None)


@pytest.mark.parametrize('words', [[], ['payload:=3', 'robot:=r2', '--debug'], ['pyload']])
def test_arguments_of_others_are_left_alone(words):
    refuse_misspelt(words, MachineArguments)


def test_the_nearest_name_is_told():
    with pytest.raises(SettingError, match='did you mean payload'):
        refuse_misspelt(['pyload:=3'], MachineArguments)
    with pytest.raises(SettingError, match='one of the arguments simulate.*did you mean payload'):
        parse_arguments({'pyload': '3'}, MachineArguments)


def test_real_launch_reads_it(graph):
    for name in ('launch', 'launch_ros'):
        pytest.importorskip(name, reason=f'{name} is not installed: the wheels of ROS 2 lack it')
    from launch import LaunchContext
    description = load(graph).generate_launch_description()
    context = LaunchContext()
    names = {argument.name for argument in description.get_launch_arguments()}
    kind, make = GRAPHS[graph]
    assert names == {item.name for item in fields(kind)}
    *declared, opaque = description.entities
    for argument in declared:
        argument.visit(context)
    assert len(opaque.visit(context)) == len(make(kind()).processes)


def test_real_launch_judges_what_is_typed_for_our_file_alone(graph, tmp_path, monkeypatch):
    """As `ros2 launch` does it: one action that includes the file with all that was typed; and a bringup with ours."""
    for name in ('launch', 'launch_ros'):
        pytest.importorskip(name, reason=f'{name} is not installed: the wheels of ROS 2 lack it')
    from launch import LaunchDescription, LaunchService
    from launch.actions import IncludeLaunchDescription, LogInfo
    from launch.launch_description_sources import PythonLaunchDescriptionSource
    launching = sys.modules.get(SHARED) or importlib.import_module(SHARED)
    made = []
    monkeypatch.setattr(launching, 'node', lambda process: made.append(process) or LogInfo(msg=process.name))
    ours, parent = ROOT / 'launch' / f'{graph}.launch.py', tmp_path / 'bringup.launch.py'
    parent.write_text(f"""
from launch import LaunchDescription
from launch.actions import DeclareLaunchArgument, IncludeLaunchDescription
from launch.launch_description_sources import PythonLaunchDescriptionSource

def generate_launch_description():
    return LaunchDescription([*(DeclareLaunchArgument(name, default_value='x') for name in {USUAL}),
                              IncludeLaunchDescription(PythonLaunchDescriptionSource({str(ours)!r}))])
""")

    def launched(path, words):
        made.clear()
        service = LaunchService(argv=words)
        service.include_launch_description(LaunchDescription([IncludeLaunchDescription(
            PythonLaunchDescriptionSource(str(path)), launch_arguments=[tuple(text.split(':=')) for text in words])]))
        return service.run() == 0 and len(made) > 0

    assert launched(ours, ['seed:=3', 'robot:=r2'])
    assert not launched(ours, ['simulte:=false'])
    assert launched(parent, [f'{name}:=x' for name in USUAL])


@pytest.mark.parametrize('mechanism, sensors', [
    ('five_bar', 'encoder_1 encoder_2'), ('four_bar', 'encoder'),
    ('excavator_arm', 'boom_stroke stick_stroke bucket_stroke'),
])
def test_sensors_are_the_encoders_of_the_mechanism_where_none_is_named(mechanism, sensors):
    processes = linkage_graph(LinkageArguments(mechanism=mechanism)).processes
    assert {process.parameters['sensors'] for process in processes} == {sensors}


def test_sensors_that_are_named_are_those_of_the_mechanism():
    def given(**arguments):
        return linkage_graph(LinkageArguments(**arguments)).processes[0].parameters['sensors']

    assert given(mechanism='four_bar', sensors='crank_gyro encoder') == 'crank_gyro encoder'
    assert given(mechanism='four_bar', sensors='') == ''
    with pytest.raises(SettingError, match='encoder_1.*sensors of four_bar: encoder, crank_gyro'):
        given(mechanism='four_bar', sensors='encoder_1')


def test_real_launch_starts_what_dies_again_and_ends_with_the_final_one(tmp_path):
    """With processes of its own: status 2 is not started again, another is; the end of a final one ends all."""
    for name in ('launch', 'launch_ros'):
        pytest.importorskip(name, reason=f'{name} is not installed: the wheels of ROS 2 lack it')
    from launch import LaunchDescription, LaunchService
    from launch.actions import ExecuteProcess, Shutdown, TimerAction

    from mbse_ros.nodes.graphs.launching import started_again

    def counting(name, status):
        code = f'open({str(tmp_path / name)!r}, "a").write("x"); raise SystemExit({status})'
        return ExecuteProcess(cmd=[sys.executable, '-c', code],
                              on_exit=started_again(name, lambda: counting(name, status)))

    final = TimerAction(period=4.0, actions=[Shutdown(reason='over')])
    service = LaunchService()
    service.include_launch_description(LaunchDescription([counting('bad', BAD_START), counting('dies', 1), final]))
    service.run()
    assert (tmp_path / 'bad').read_text() == 'x'
    assert 2 <= len((tmp_path / 'dies').read_text()) <= 5
