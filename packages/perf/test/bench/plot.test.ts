import { describe, expect, it } from 'vitest'
import { type Plot, plotSvg } from '../../src/bench/page/plot.ts'
import { scaleOf, tickText } from '../../src/bench/page/scale.ts'
import { element, escapeXml } from '../../src/bench/page/svg.ts'

const WIDE = [0, 100] as const

describe('a scale', () => {
  it.each([
    ['goes from round figure to round figure', [3, 40], undefined, [2, 5, 10, 20, 50]],
    ['is as large as what it shows, where that is round', [1, 100], undefined, [1, 2, 5, 10, 20, 50, 100]],
    ['has decades where more would be too many', [0.2, 900], undefined, [1, 10, 100, 1000]],
    ['has room for a single value', [5], undefined, [5, 10]],
    ['ignores what has no logarithm', [0, Number.NaN, 2, 3], undefined, [2, 5]],
    ['shows something of nothing', [], undefined, [1, 2, 5, 10]],
    ['goes from given tick to given tick', [1.1, 2.2], [0.5, 1, 1.3, 2, 3, 5], [1, 1.3, 2, 3]],
    ['begins and ends at a given tick that is a value', [1, 2], [0.5, 1, 2, 3], [1, 2]],
    ['goes beyond given ticks that are too few', [1, 7], [2, 4], [2, 4]],
  ])('of logarithms %s', (_, values, ticks, expected) => {
    const axis = { label: 'x', kind: 'log' as const, ...(ticks ? { ticks } : {}) }
    expect(scaleOf(axis, values, WIDE).ticks).toEqual(expected)
  })

  it.each([
    ['begins at zero', [40, 73], undefined, [0, 10, 20, 30, 40, 50, 60, 70, 80]],
    ['has steps below one', [0.31], undefined, [0, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35]],
    ['takes the ticks it is given', [1, 2, 4], [1, 2, 4, 8], [1, 2, 4]],
    ['shows something of nothing', [], undefined, [0, 2, 4, 6, 8, 10]],
  ])('that is linear %s', (_, values, ticks, expected) => {
    const axis = { label: 'x', kind: 'linear' as const, ...(ticks ? { ticks } : {}) }
    expect(scaleOf(axis, values, WIDE).ticks).toEqual(expected)
  })

  it.each([
    ['log', [1, 100], 10, 50],
    ['log', [1, 100], 1, 0],
    ['log', [1, 100], 100, 100],
    ['log', [1, 100], 0, 0],
    ['linear', [10], 5, 50],
  ] as const)('%s of %j places %d at %d', (kind, values, value, expected) => {
    const exact = kind === 'linear' ? { ticks: [5, 10] } : {}
    const { place } = scaleOf({ label: 'x', kind, ...exact }, values, WIDE)
    // A linear one leaves some room above.
    if (kind === 'linear') expect(place(value) * 2).toBeCloseTo(place(10))
    else expect(place(value)).toBeCloseTo(expected)
  })

  it.each([
    [0.2, '0.2'],
    [1000, '1\u202f000'],
    [10_000_000, '10\u202f000\u202f000'],
    [0.0005, '0.0005'],
  ])('writes %d', (value, expected) => {
    expect(tickText(value)).toBe(expected)
  })
})

/**
 * The tags in their order, or where they are not well formed (XML 1.0, section 2.1): every element closed by its own end,
 * no bare ampersand or angle bracket, no attribute twice.
 */
const tagsOf = (xml: string): string[] => {
  const open: string[] = []
  const seen: string[] = []
  const rest = xml.replace(/<(\/?)([a-z]+)((?: [\w:-]+="[^"<]*")*)(\/?)>/gi, (_, end, name, attributes, empty) => {
    const names = (attributes as string).match(/ [\w:-]+(?==)/g) ?? []
    if (new Set(names).size !== names.length) throw new Error(`an attribute twice: ${attributes}`)
    if (end && open.pop() !== name) throw new Error(`</${name}> closes another`)
    if (!end) seen.push(name)
    if (!end && !empty) open.push(name)
    return ''
  })
  if (open.length > 0) throw new Error(`never closed: ${open}`)
  if (/[<>]|&(?!amp;|lt;|gt;|quot;)/.test(rest + xml.replace(/<[^>]*>/g, ''))) throw new Error('bare markup')
  return seen
}

const at = (x: number, median: number) => ({ x, median, min: median / 2, max: median * 2 })
const plot: Plot = {
  title: 'Latency & "load" <of> one',
  x: { label: 'connections', kind: 'log', ticks: [1, 10] },
  y: { label: 'ms', kind: 'log' },
  series: [
    { name: 'check', colour: 0, points: [at(1, 1), at(10, 5)] },
    { name: 'reserve', colour: 1, dashed: true, points: [at(1, 2), at(10, 20)] },
  ],
  references: [
    {
      name: 'at most',
      points: [
        [1, 3],
        [10, 3],
      ],
    },
  ],
}

describe('a plot', () => {
  const svg = plotSvg(plot)
  const tags = tagsOf(svg)
  const count = (name: string) => tags.filter(tag => tag === name).length

  it('is one well-formed document without script', () => {
    expect(tags[0]).toBe('svg')
    expect(count('svg')).toBe(1)
    expect(svg).not.toMatch(/<script|\bon\w+=|javascript:|href/)
    expect(svg).toContain('aria-label="Latency &amp; &quot;load&quot; &lt;of&gt; one"')
    expect(svg).not.toMatch(/NaN|undefined|Infinity/)
  })

  it('shows a line, a band and a name for each series, and a line for each reference', () => {
    expect(count('polyline')).toBe(3)
    expect(svg.match(/class="c\d band"/g)).toEqual(['class="c0 band"', 'class="c1 band"'])
    for (const text of ['check', 'reserve', 'at most', 'connections', 'ms']) expect(svg).toContain(`>${text}</text>`)
    // Two in the plot and one in the legend, of each.
    expect(svg.match(/class="c0 mark"/g)).toHaveLength(3)
    expect(svg.match(/stroke-dasharray="6 4"/g)).toHaveLength(2)
  })

  it('puts what is more further up and to the right', () => {
    const lines = [...svg.matchAll(/class="c0 line" points="([\d.]+),([\d.]+) ([\d.]+),([\d.]+)"/g)]
    const [x1, y1, x2, y2] = (lines[0] ?? []).slice(1).map(Number)
    expect(x2).toBeGreaterThan(x1 ?? Number.NaN)
    expect(y2).toBeLessThan(y1 ?? Number.NaN)
  })

  it('has bands from the least to the most', () => {
    const heightsOf = (what: string) =>
      [...(svg.match(new RegExp(`class="c0 ${what}"[^>]* points="([^"]*)"`))?.[1] ?? '').matchAll(/,([\d.]+)/g)].map(
        ([, y]) => Number(y),
      )
    const [median = Number.NaN] = heightsOf('line')
    const [most = Number.NaN, , , least = Number.NaN] = heightsOf('band')
    expect(most).toBeLessThan(median)
    // Of one series a point is at half and at double its median, which are as far on a logarithmic scale.
    expect(least - median).toBeCloseTo(median - most, 1)
  })

  it('is readable in light and in dark', () => {
    expect(svg).toContain('@media(prefers-color-scheme:dark)')
  })

  it('is the same text every time, and survives having nothing to show', () => {
    expect(plotSvg(plot)).toBe(svg)
    const empty = plotSvg({ ...plot, series: [{ name: 'check', colour: 0, points: [] }], references: [] })
    expect(tagsOf(empty)[0]).toBe('svg')
    expect(empty).not.toMatch(/NaN|undefined/)
  })
})

describe('an element', () => {
  it.each([
    [element('a', {}), '<a/>'],
    [element('a', { x: 1 / 3, y: undefined, z: 'a"b' }), '<a x="0.33" z="a&quot;b"/>'],
    [element('a', {}, ['<', element('b', {})]), '<a>&lt;<b/></a>'],
  ])('%#', ({ markup }, expected) => {
    expect(markup).toBe(expected)
  })

  it('escapes what would be markup', () => {
    expect(escapeXml('a & b < "c" > d')).toBe('a &amp; b &lt; &quot;c&quot; &gt; d')
  })
})
