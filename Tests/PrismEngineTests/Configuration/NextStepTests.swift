import Glibc
import PrismConfig
import PrismProtocol
import PrismTestSupport
import Testing

@testable import PrismEngine

@Suite("The next step of an operator") struct NextStepTests {
  private static let types = "monitorList: [{type: order}]\n"
  private static let url = "url: https://collector.test\n"

  @Test(
    "names the namespace that can't send, and the command that mends it",
    arguments: [
      (
        [:], [:], "nothing of the namespace prism is sent, because it has no url: run `echo 'url: https://COLLECTOR' >>"
      ),
      (["shop": types], [:], "the namespace prism is sent"),
      (["shop": types], ["shop": 2], "nothing of the namespace shop is sent"),
      (["shop": url + types], [:], nil),
      (["shop": url + types], ["prism": 1], "the namespace prism is sent"),
      (["shop": url + types + "isUpload: false\n"], ["shop": 1], "the namespace prism is sent"),
    ] as [([String: String], [String: Int], String?)])
  func text(namespaces: [String: String], unsent: [String: Int], expected: String?) throws {
    try check(namespaces, unsent, "keys: [{id: main, file: main.key}]\n", expected)
  }

  @Test("without a key it is the command that makes one")
  func noKey() throws {
    let expected = "/keys/main.key`, write `keys: [{id: main, file: keys/main.key}]` into "
    try check(["shop": Self.types], ["shop": 1], "", expected)
  }

  private func check(
    _ namespaces: [String: String], _ unsent: [String: Int], _ keys: String, _ expected: String?
  ) throws {
    let folder = TemporaryFolder()
    try folder.write(String(repeating: "a1", count: 16), to: "main.key")
    chmod(folder("main.key"), 0o600)
    try folder.write("\(keys)state: \(folder.path)/state\n", to: "prismd.yaml")
    mkdir(folder("namespaces.d"), 0o700)
    for (name, text) in namespaces { try folder.write(text, to: "namespaces.d/\(name).yaml") }
    let loaded = try ConfigurationLoader(path: folder("prismd.yaml"), environment: [:], identityCheck: nil).load()
    let text = NextStep.text(loaded) { unsent[$0.text] ?? 0 }
    guard let expected else { return #expect(text == nil) }
    #expect(text?.contains(expected) == true, "\(text ?? "nil")")
    #expect(text?.contains(folder.path) == true, "it names the file")
  }
}
