import './stepped-clock.ci.test.ts'
