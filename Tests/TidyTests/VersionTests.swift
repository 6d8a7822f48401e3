import Testing

@Suite struct VersionTests {
  private static let path = "Sources/PrismProtocol/Values/PrismVersion.swift"

  private func version() throws -> String {
    let text = try #require(SourceTree.read(Self.path))
    return String(try #require(text.firstMatch(of: /current = "(\d+\.\d+\.\d+)"/)?.1))
  }

  @Test("one file has the version, the others take it from there") func versionIsInOnePlace() throws {
    let text = "\"[^\"]*\\b\(try version().replacing(".", with: "\\."))\\b[^\".]*\""
    let places = try SourceTree.sources.filter { $0.text.contains(try Regex(text)) }.map(\.path)
    #expect(places == [Self.path])
  }

  @Test("the Debian package is of this version") func debianAgrees() throws {
    let changelog = try #require(SourceTree.read("debian/changelog"))
    #expect(changelog.hasPrefix("prism (\(try version())"))
  }

  @Test("the changelog's newest release is this version") func changelogAgrees() throws {
    let changelog = try #require(SourceTree.read("CHANGELOG.md"))
    let releases = changelog.matches(of: /(?m)^## (\d+\.\d+\.\d+)/).map { String($0.1) }
    #expect(releases.first == (try version()))
  }
}
