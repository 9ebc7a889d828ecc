const light = ['#0067a5', '#c1480b', '#00805c', '#8b3f93']
const dark = ['#6cb6ff', '#ff9d5c', '#3fd0a0', '#dc9be4']

const coloured = (colours: readonly string[]): string =>
  colours.map((colour, index) => `.c${index}{color:${colour}}`).join('')

/** Of every plot. A page that shows it as an image passes on whether its reader has it light or dark. */
export const STYLE = [
  'text{font:13px system-ui,sans-serif;fill:#1f2328}',
  '.small{font-size:12px;fill:#59636e}.title{font-size:16px;font-weight:600}',
  '.ground{fill:#ffffff}.grid{stroke:#d9dee4;stroke-width:1}.axis{stroke:#59636e;fill:none}',
  '.line{stroke:currentColor;stroke-width:2;fill:none}.mark{fill:currentColor}',
  '.band{fill:currentColor;fill-opacity:.14;stroke:none}',
  '.reference{stroke:#59636e;stroke-width:1.5;stroke-dasharray:2 4;fill:none}',
  coloured(light),
  '@media(prefers-color-scheme:dark){',
  'text{fill:#e6edf3}.small{fill:#9aa4af}.ground{fill:#0d1117}.grid{stroke:#2a313a}.axis,.reference{stroke:#9aa4af}',
  coloured(dark),
  '}',
].join('')
