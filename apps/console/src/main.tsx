import './validation.ts'
import './styles/base.css'
import './styles/controls.css'
import './styles/content.css'
import { render } from 'preact'
import { SessionProvider } from './api/session.tsx'
import { App } from './app.tsx'
import { ToastProvider } from './ui/feedback.tsx'

const root = document.getElementById('app')
if (root !== null) {
  render(
    <SessionProvider>
      <ToastProvider>
        <App />
      </ToastProvider>
    </SessionProvider>,
    root,
  )
}
