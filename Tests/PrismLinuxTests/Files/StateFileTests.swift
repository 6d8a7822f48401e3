import Foundation
import PrismEngine
import PrismLinux
import PrismTestSupport
import Testing

@Suite("A file of the state folder")
struct StateFileTests {
  private let folder = TemporaryFolder()
  private var file: StateFile { StateFile(folder: folder.path, name: "remote.json") }

  @Test("is there or not, is replaced whole, and leaves nothing beside it")
  func replaced() async throws {
    #expect(try await file.read(bytesMax: 10) == nil)
    try await file.write([1, 2, 3])
    try await file.write([4])
    #expect(try await file.read(bytesMax: 10) == [4])
    #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path) == ["remote.json"])
    let mode = try FileManager.default.attributesOfItem(atPath: folder("remote.json"))[.posixPermissions] as? Int
    #expect(mode == 0o600)
  }

  @Test("is set aside under a name that tells why")
  func setAside() async throws {
    try await file.write([1])
    #expect(try await file.setAside() == folder("remote.json.damaged"))
    #expect(try await file.read(bytesMax: 10) == nil)
  }

  @Test("that can't be read or written says so with its path")
  func faults() async throws {
    try await file.write([1, 2, 3])
    let large = await #expect(throws: KeptFileFault.self) { try await file.read(bytesMax: 2) }
    #expect(large?.description == "\(folder("remote.json")): is over 2 bytes")
    let elsewhere = StateFile(folder: folder("nowhere"), name: "remote.json")
    let missing = await #expect(throws: KeptFileFault.self) { try await elsewhere.write([1]) }
    #expect(missing?.description == "\(folder("nowhere/remote.json.new")): cannot be made: No such file or directory")
    // A link in the place of the new file would be written through.
    try FileManager.default.createSymbolicLink(
      atPath: folder("remote.json.new"), withDestinationPath: folder("target"))
    await #expect(throws: KeptFileFault.self) { try await file.write([1]) }
    #expect(!FileManager.default.fileExists(atPath: folder("target")))
    #expect(try await file.read(bytesMax: 10) == [1, 2, 3])
  }
}
