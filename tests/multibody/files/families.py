"""Model files by seed: trees with random options of what users bring."""

from __future__ import annotations

from typing import Any

import numpy as np

SENSORS = (
    "framepos", "framequat", "framexaxis", "framezaxis", "framelinvel", "frameangvel", "framelinacc",
    "frameangacc",
)  # fmt: skip
AT_SITES = ("accelerometer", "gyro", "velocimeter")
SERVOS = (
    "<motor name='m{n}' {on} gear='{a}' {more}/>",
    "<position name='m{n}' {on} kp='{b}' kv='{c}' gear='{a}' {more}/>",
    "<velocity name='m{n}' {on} kv='{c}' gear='{a}' {more}/>",
    "<position name='m{n}' {on} kp='{b}' timeconst='0.0{n}2' {more}/>",
    "<intvelocity name='m{n}' {on} kp='{b}' kv='{c}' actrange='-2 2' {more}/>",
    "<damper name='m{n}' {on} kv='{c}' ctrlrange='0 2'/>",
    "<cylinder name='m{n}' {on} area='{a}' bias='1 -0.5 -0.2' timeconst='0.3'/>",
    "<general name='m{n}' {on} gear='{a}' dyntype='filter' dynprm='0.2' gaintype='affine' "
    "gainprm='1 0.5 0.1' biastype='affine' biasprm='0.2 -{b} -0.1' {more}/>",
)


def words(*values: Any) -> str:
    return " ".join(f"{float(x):.6g}" for x in np.concatenate([np.reshape(v, -1) for v in values]))


class Family:
    """A file of a seed. Options are drawn one by one, so that every product of them comes up.

    Args:
        seed: of everything.
        loops: whether equalities close loops.
    """

    def __init__(self, seed: int, loops: bool = False) -> None:
        self.rng = np.random.default_rng(seed)
        self.degrees = self.often(0.5)
        self.bodies: list[str] = []
        self.single: list[str] = []  # hinges and slides, by name
        self.balls: list[str] = []
        self.free: list[str] = []
        self.geoms: list[str] = []
        self.sites = ["ws"]
        self.count = int(self.rng.integers(3, 6))
        roots = []
        while len(self.bodies) < self.count:
            roots.append(self.body(0))
        self.world = "".join(roots)
        self.aside = 0.0 if loops else 1.0  # what a loop that a reference closes has no room for
        self.equalities = self.coupled() + (self.closed() if loops else "")
        self.tendons, self.lines = self.pulled()
        if self.lines and self.often(0.4):
            self.equalities += (
                f"<tendon name='et' tendon1='{self.lines[0]}' polycoef='{0.05 * self.aside} 0 0 0 0'/>"
            )
        self.motors, self.driven = self.actuated()
        carried = self.often(0.3)
        if carried:
            self.world = self.world.replace("<body name='b1' ", "<body name='b1' gravcomp='0.7' ")
        self.text = self.whole()

    def often(self, share: float) -> bool:
        return bool(self.rng.uniform() < share)

    def unit(self, n: int) -> np.ndarray:
        x = self.rng.normal(size=n)
        return x / np.linalg.norm(x)

    def angle(self, *radians: float) -> str:
        return words(np.rad2deg(radians) if self.degrees else radians)

    def turned(self) -> str:
        kind = self.rng.integers(5)
        return (
            "", f"quat='{words(self.unit(4))}'", f"euler='{self.angle(*self.rng.uniform(-1, 1, 3))}'",
            f"axisangle='{words(self.unit(3))} {self.angle(self.rng.uniform(-1, 1))}'",
            f"xyaxes='{words(self.unit(3), self.unit(3))}'",
        )[kind]  # fmt: skip

    def body(self, depth: int) -> str:
        name = f"b{len(self.bodies)}"
        self.bodies.append(name)
        text = f"<body name='{name}' pos='{words(self.rng.uniform(-0.6, 0.6, 3))}' {self.turned()}"
        text += " childclass='near'>" if self.often(0.4) else ">"
        text += self.joints(name, depth)
        text += self.mass(name)
        text += f"<site name='s{name}' pos='{words(self.rng.uniform(-0.3, 0.3, 3))}' {self.turned()}/>"
        self.sites.append(f"s{name}")
        if self.often(0.25):
            text += (
                f"<body name='p{name}' pos='{words(self.rng.uniform(-0.3, 0.3, 3))}' {self.turned()}>"
                f"<site name='t{name}' pos='0.1 0.05 0'/></body>"
            )
            self.sites.append(f"t{name}")
        while len(self.bodies) < self.count and depth < 4 and self.often(0.6):
            text += self.body(depth + 1)
        return text + "</body>"

    def joints(self, name: str, depth: int) -> str:
        if depth == 0 and self.often(0.3):
            self.free.append(name)
            return (
                "<freejoint/>"
                if self.often(0.5)
                else f"<joint name='f{name}' type='free' armature='0.05'/>"
            )
        if self.often(0.15) and depth:
            return ""  # welded
        if self.often(0.2):
            self.balls.append(f"o{name}")
            more = "stiffness='4'" if self.often(0.3) else ""
            pivot = words(self.rng.uniform(-0.2, 0.2, 3))
            return f"<joint name='o{name}' type='ball' pos='{pivot}' damping='0.3' {more}/>"
        count = int(self.rng.choice([1, 1, 2, 3]))
        return "".join(self.joint(f"j{name}{k}") for k in range(count))

    def joint(self, name: str) -> str:
        rng = self.rng
        self.single.append(name)
        slide = self.often(0.35)
        ref = float(rng.uniform(-0.3, 0.3)) if self.often(0.4) else 0.0
        given = [f"pos='{words(rng.uniform(-0.2, 0.2, 3))}'", f"axis='{words(self.unit(3) * 2.0)}'"]

        def of_joint(*values: float) -> str:
            return words(values) if slide else self.angle(*values)

        given += [f"ref='{of_joint(ref)}'"] * bool(ref)
        if self.often(0.4):
            given.append(f"stiffness='{rng.uniform(1, 5):.4g}'")
            given += [f"springref='{of_joint(float(rng.uniform(-0.4, 0.4)))}'"] * self.often(0.5)
        given += [f"damping='{rng.uniform(0.1, 1):.4g}'"] * self.often(0.5)
        given += [f"armature='{rng.uniform(0.01, 0.1):.4g}'"] * self.often(0.4)
        given += [f"frictionloss='{rng.uniform(0.1, 1):.4g}'"] * self.often(0.2)
        given += [f"range='{of_joint(ref - 2.0, ref + 2.0)}'"] * self.often(0.4)
        given += ["actuatorfrcrange='-3 3'"] * self.often(0.2)
        given += ["class='far'"] * self.often(0.2)
        given += ["type='slide'"] * slide
        return f"<joint name='{name}' {' '.join(given)}/>"

    def mass(self, name: str) -> str:
        rng = self.rng
        if self.often(0.4):
            a = rng.uniform(0.05, 0.3, 3)
            moments = words(a[1] + a[2], a[0] + a[2], a[0] + a[1])
            return (
                f"<inertial pos='{words(rng.uniform(-0.2, 0.2, 3))}' mass='{rng.uniform(0.5, 2):.4g}' "
                f"diaginertia='{moments}' quat='{words(self.unit(4))}'/>"
            )
        kind, place = rng.integers(4), f"pos='{words(rng.uniform(-0.2, 0.2, 3))}'"
        own = (
            f"type='box' {place} size='{words(rng.uniform(0.1, 0.3, 3))}' {self.turned()}",
            f"type='capsule' size='0.06' fromto='0 0 0 {words(rng.uniform(0.1, 0.4, 3))}'",
            f"type='ellipsoid' {place} size='0.1 {words(rng.uniform(0.1, 0.3, 2))}' {self.turned()}",
            f"type='sphere' {place} size='0.15' mass='{rng.uniform(0.5, 2):.4g}'",
        )[kind]
        self.geoms.append(f"g{name}")
        more = f"<geom name='h{name}' size='0.08' pos='0.2 0.1 0' mass='0.4'/>" * self.often(0.3)
        return f"<geom name='g{name}' {own}/>" + more

    def coupled(self) -> str:
        if len(self.single) < 2 or self.often(0.5):
            return ""
        one, other = self.rng.permutation(self.single)[:2]
        law = f"polycoef='{0.05 * self.aside} {words(self.rng.uniform(-1, 1, 2))} 0.1 0'"
        found = f"<joint joint1='{one}' joint2='{other}' {law}/>"
        rest = [x for x in self.single if x not in (one, other)]
        if rest and self.often(0.3):
            found += f"<joint joint1='{rest[0]}' polycoef='{0.1 * self.aside} 0 0 0 0'/>"
        return found

    def closed(self) -> str:
        one, other = self.rng.permutation(self.bodies)[:2]
        kind = self.rng.integers(3)
        place = words(self.rng.uniform(-0.2, 0.2, 3))
        return (
            f"<connect body1='{one}' body2='{other}' anchor='{place}'/>",
            f"<connect body1='{one}' anchor='{place}'/>",
            f"<weld body1='{one}' body2='{other}'/>",
        )[kind]

    def pulled(self) -> tuple[str, list[str]]:
        found, lines, rng = "", [], self.rng
        options = [
            "stiffness='7'", "damping='0.8'", "springlength='-0.1 0.2'", "limited='true' range='-9 9'",
            "frictionloss='0.2'",
        ]  # fmt: skip
        if len(self.single) > 1 and self.often(0.5):
            own = " ".join(x for x in options if self.often(0.4))
            drums = "".join(
                f"<joint joint='{x}' coef='{rng.uniform(-1, 1):.4g}'/>"
                for x in rng.permutation(self.single)[:3]
            )
            found, lines = f"<fixed name='tf' {own}>{drums}</fixed>", ["tf"]
        if len(self.sites) > 3 and self.often(0.6):
            own = " ".join(x for x in options if self.often(0.4))
            path = [f"<site site='{x}'/>" for x in rng.permutation(self.sites)[:4]]
            if self.often(0.5):
                path.insert(2, "<pulley divisor='2'/>")
            found += f"<spatial name='ts' {own}>{''.join(path)}</spatial>"
            lines.append("ts")
        return found, lines

    def actuated(self) -> tuple[str, list[str]]:
        found, names, rng = "", [], self.rng
        places = [f"joint='{x}'" for x in self.single] + [f"tendon='{x}'" for x in self.lines]
        for n, on in enumerate(places):
            if self.often(0.3):
                continue
            more = "forcerange='-2 2'" * self.often(0.3) + " ctrlrange='-0.5 0.7'" * self.often(0.4)
            a, b, c = (f"{x:.4g}" for x in rng.uniform(0.5, 3, 3))
            text = str(rng.choice(SERVOS)).format(n=n, on=on, a=a, b=b, c=c, more=more)
            found, names = found + text, [*names, f"m{n}"]
        return found, names

    def sensors(self) -> str:
        rng, found = self.rng, []
        for k in range(6):
            kind, of = [("xbody", self.bodies), ("body", self.bodies), ("site", self.sites[1:])][
                rng.integers(3)
            ]
            found.append(str(rng.choice(SENSORS)).format(k, kind, rng.choice(of)))
        for k in range(3):
            found.append(f"<{rng.choice(AT_SITES)} name='a{k}' site='{rng.choice(self.sites[1:])}'/>")
        for x in self.single:
            found.append(f"<jointpos name='q{x}' joint='{x}'/><jointvel name='v{x}' joint='{x}'/>")
        for x in self.lines:
            found.append(f"<tendonpos name='q{x}' tendon='{x}'/><tendonvel name='v{x}' tendon='{x}'/>")
        for x in self.driven:
            found += [f"<actuator{w} name='{w}{x}' actuator='{x}'/>" for w in ("frc", "pos", "vel")]
        found.append(f"<subtreecom name='com' body='{self.bodies[0]}'/>")
        for k, kind in enumerate(("framepos", "framelinvel", "frameangvel", "framequat", "frameyaxis")):
            one, other = rng.choice(self.sites[1:]), rng.choice(self.bodies)
            ends = f"objtype='site' objname='{one}' reftype='xbody' refname='{other}'"
            found.append(f"<{kind} name='r{k}' {ends}/>")
        return "".join(found)

    def whole(self) -> str:
        rng = self.rng
        compiler = f"<compiler angle='{'degree' if self.degrees else 'radian'}'"
        compiler += " eulerseq='zyx'/>" if self.often(0.3) else "/>"
        defaults = (
            "<default><joint damping='0.15'/><default class='near'><joint armature='0.03'/>"
            "<geom density='600'/><default class='far'><joint damping='0.4' stiffness='1.5'/></default>"
            "</default></default>"
        )
        option = f"<option gravity='{words(rng.uniform(-3, 3, 2), -9.0)}'/>"
        return (
            f"<mujoco>{compiler}{option}{defaults}<worldbody><site name='ws' pos='0.5 0.2 1.4'/>"
            f"{self.world}</worldbody><tendon>{self.tendons}</tendon><equality>{self.equalities}</equality>"
            f"<actuator>{self.motors}</actuator><sensor>{self.sensors()}</sensor></mujoco>"
        )


def robot(seed: int) -> str:
    """A URDF of a seed: a tree of joints, some of which follow others."""
    rng = np.random.default_rng(seed)
    links, joints, leaders = ["<link name='l0'/>"], [], []
    for k in range(1, int(rng.integers(4, 8))):
        a = rng.uniform(0.05, 0.3, 3)
        place, turn = words(rng.uniform(-0.2, 0.2, 3)), words(rng.uniform(-1.0, 1.0, 3))
        links.append(
            f"<link name='l{k}'><inertial><origin xyz='{place}' rpy='{turn}'/>"
            f"<mass value='{rng.uniform(0.5, 2.0):.4g}'/><inertia ixx='{a[1] + a[2]:.4g}' "
            f"iyy='{a[0] + a[2]:.4g}' izz='{a[0] + a[1]:.4g}' ixy='0.01' ixz='0' iyz='-0.02'/>"
            "</inertial></link>"
        )
        kinds = ("revolute", "continuous", "prismatic", "fixed")
        kind = "revolute" if k == 1 else str(rng.choice(kinds, p=(0.4, 0.2, 0.3, 0.1)))
        axis = rng.normal(size=3)
        inner = f"<axis xyz='{words(axis / np.linalg.norm(axis))}'/>" * (kind != "fixed")
        inner += "<limit lower='-2' upper='2.5' effort='3' velocity='1'/>" * (kind in kinds[::2])
        inner += f"<dynamics damping='{rng.uniform(0.1, 1.0):.4g}' friction='0.1'/>" * (rng.uniform() < 0.5)
        if kind != "fixed" and leaders and rng.uniform() < 0.4:
            ratio, offset = rng.uniform(-1.5, 1.5), rng.uniform(-0.1, 0.1)
            leader = rng.choice(leaders)
            inner += f"<mimic joint='{leader}' multiplier='{ratio:.4g}' offset='{offset:.4g}'/>"
        elif kind != "fixed":
            leaders.append(f"j{k}")
        origin = f"xyz='{words(rng.uniform(-0.5, 0.5, 3))}' rpy='{words(rng.uniform(-1.5, 1.5, 3))}'"
        joints.append(
            f"<joint name='j{k}' type='{kind}'><parent link='l{rng.integers(0, k)}'/><child link='l{k}'/>"
            f"<origin {origin}/>{inner}</joint>"
        )
    return f"<robot name='r'>{''.join(links)}{''.join(joints)}</robot>"
