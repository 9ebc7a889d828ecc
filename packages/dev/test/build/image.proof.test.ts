import './image.ci.test.ts'
