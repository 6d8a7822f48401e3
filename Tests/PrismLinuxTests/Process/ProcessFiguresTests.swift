import PrismEngine
import Testing

@testable import PrismLinux

@Suite("The figures of the process")
struct ProcessFiguresTests {
  @Test("the process's own figures are there")
  func figures() {
    let figures = ProcessFigures.current()
    #expect(figures.residentBytes > 1024 * 1024 && figures.virtualBytes >= figures.residentBytes)
    #expect(figures.threads > 0 && figures.openDescriptors > 2 && figures.descriptorsMax > 2)
  }
}
