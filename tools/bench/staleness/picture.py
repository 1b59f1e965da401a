"""Draws lines over numbers of workers as an SVG."""

import math
from xml.sax.saxutils import escape

WIDTH, HEIGHT = 820, 460
LEFT, RIGHT, TOP, BOTTOM = 60, 220, 40, 50
COLORS = ("#1b6ca8", "#d1495b", "#2e8b57", "#edae49", "#6a4c93", "#00798c", "#8d5524", "#555555", "#c44fa6", "#7aa01c")
MOST_POINTS = 15  # shown below the best mean; what is lower lies on the lower edge


def draw(title, workers, lines, baseline):
    """Returns the SVG. `lines` maps a name to its values for some of `workers`: (mean, least, most) in percent.

    `baseline` is drawn over the whole width. A value below the edge is drawn there as a hollow triangle, with
    the number beside it.
    """
    chart = _Chart(workers, [value for values in lines.values() for value in values.values()], baseline)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" font-family="sans-serif" '
        f'font-size="12">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
        f'<text x="{LEFT}" y="22" font-size="15">{escape(title)}</text>',
        *chart.axes(),
    ]
    for number, (name, values) in enumerate(lines.items()):
        parts += chart.line(name, values, number)
    return "\n".join(parts + ["</svg>"]) + "\n"


class _Chart:
    def __init__(self, workers, values, baseline):
        self.workers = workers
        self.baseline = baseline
        highest = max([most for _, _, most in values] + [baseline])
        lowest = min([mean for mean, _, _ in values] + [baseline])
        self.low = math.floor(max(lowest, highest - MOST_POINTS)) - 0.5
        self.high = math.ceil(highest * 2) / 2 + 0.25

    def x(self, workers):
        steps = max(len(self.workers) - 1, 1)
        return LEFT + 20 + self.workers.index(workers) * (WIDTH - LEFT - RIGHT - 40) / steps

    def y(self, value):
        value = min(max(value, self.low), self.high)
        return HEIGHT - BOTTOM - (value - self.low) * (HEIGHT - TOP - BOTTOM) / (self.high - self.low)

    def axes(self):
        bottom, right = HEIGHT - BOTTOM, WIDTH - RIGHT
        parts = []
        step = 0.5 if self.high - self.low < 5 else 1 if self.high - self.low < 10 else 2
        tick = math.ceil(self.low / step) * step
        while tick <= self.high:
            y = self.y(tick)
            parts.append(f'<path d="M{LEFT} {y:.1f}H{right}" stroke="#e4e4e4"/>')
            parts.append(f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{tick:g} %</text>')
            tick += step
        for count in self.workers:
            parts.append(f'<text x="{self.x(count):.1f}" y="{bottom + 18}" text-anchor="middle">{count}</text>')
        y = self.y(self.baseline)
        parts.append(f'<text x="{(LEFT + right) / 2:.1f}" y="{bottom + 38}" text-anchor="middle">workers</text>')
        parts.append(f'<path d="M{LEFT} {TOP}V{bottom}H{right}" stroke="black" fill="none"/>')
        parts.append(f'<path d="M{LEFT} {y:.1f}H{right}" stroke="black" stroke-dasharray="6 4"/>')
        parts += self.legend("one process", 0, 'stroke="black" stroke-dasharray="6 4"')
        return parts

    def line(self, name, values, number):
        color = COLORS[number % len(COLORS)]
        stroke = f'stroke="{color}" stroke-width="2"'
        if number >= len(COLORS):
            stroke += ' stroke-dasharray="3 3"'
        points = " ".join(f"{self.x(count):.1f},{self.y(mean):.1f}" for count, (mean, _, _) in values.items())
        parts = [f'<polyline points="{points}" fill="none" {stroke}/>']
        for count, (mean, least, most) in values.items():
            parts += self.mark(self.x(count), mean, least, most, color)
        return parts + self.legend(name, number + 1, stroke)

    @staticmethod
    def legend(name, place, stroke):
        x, y = WIDTH - RIGHT + 8, TOP + 10 + 20 * place
        return [
            f'<path d="M{x} {y}h22" fill="none" {stroke}/>',
            f'<text x="{x + 28}" y="{y + 4}">{escape(name)}</text>',
        ]

    def mark(self, x, mean, least, most, color):
        y = self.y(mean)
        if mean < self.low:
            return [
                f'<path d="M{x - 5:.1f} {y - 9:.1f}h10l-5 9z" fill="white" stroke="{color}"/>',
                f'<text x="{x + 7:.1f}" y="{y - 3:.1f}" fill="{color}">{mean:.0f} %</text>',
            ]
        return [
            f'<path d="M{x:.1f} {self.y(least):.1f}V{self.y(most):.1f}" stroke="{color}"/>',
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{color}"/>',
        ]
