import Glibc
import PrismConfig
import PrismProtocol
import Testing

/// The file of a namespace that is missing for a moment takes nothing away.
@Suite("Files that are gone")
struct GoneFilesTests {
  private static let shop = NamespaceName("shop")!

  private func folder() throws -> ConfigurationFolder {
    try ConfigurationFolder([
      "prismd.yaml": "keys: [{id: k1, file: one.key}, {id: k2, file: two.key}]\n",
      "one.key": ConfigurationLoaderTests.key, "two.key": "ffeeddccbbaa99887766554433221100",
      "namespaces.d/shop.yaml": "keyId: k2\nmaxItem: 7\nmonitorList: [{type: order}]\n",
    ])
  }

  @Test("a namespace whose file is gone stays as it was, and is said; once the file is back, it counts")
  func gone() throws {
    let folder = try folder()
    let before = try folder.load()
    unlink(folder.path + "/namespaces.d/shop.yaml")
    var now = try folder.load().keepingGone(of: before)
    for _ in 0..<2 {
      let kept = try #require(now.snapshot.namespaces[Self.shop])
      #expect(kept.maxItem == 7 && kept.isFileGone)
      #expect(now.origins.namespaces[Self.shop]?["maxItem"] == before.origins.namespaces[Self.shop]?["maxItem"])
      now = try folder.load().keepingGone(of: now)
    }
    let lines = SnapshotDiff(from: before.snapshot, to: now.snapshot).lines
    #expect(lines.count == 1 && lines[0].hasPrefix("shop: its file is gone: it stays as it was until a file says"))
    #expect(SnapshotDiff(from: now.snapshot, to: now.snapshot).isEmpty)
    try folder.write("namespaces.d/shop.yaml", "maxItem: 8\nmonitorList: [{type: order}]\n")
    let back = try folder.load().keepingGone(of: now).snapshot.namespaces[Self.shop]
    #expect(back?.maxItem == 8 && back?.isFileGone == false)
  }

  @Test("`retired: true` takes a namespace away, and needs no other key; so does a key that is not configured any more")
  func retired() throws {
    let folder = try folder()
    let before = try folder.load()
    try folder.write("namespaces.d/shop.yaml", "retired: true\n")
    #expect(try folder.load().keepingGone(of: before).snapshot.namespaces[Self.shop] == nil)
    unlink(folder.path + "/namespaces.d/shop.yaml")
    try folder.write("prismd.yaml", "keys: [{id: k1, file: one.key}]\n")
    #expect(try folder.load().keepingGone(of: before).snapshot.namespaces[Self.shop] == nil)
  }

  @Test("prism, which needs no file, stays as its file made it once that is gone")
  func prismGone() throws {
    let folder = try ConfigurationFolder([
      "prismd.yaml": "", "namespaces.d/prism.yaml": "maxStoreMByte: 600\nallow: {users: [0]}\n",
    ])
    let before = try folder.load()
    unlink(folder.path + "/namespaces.d/prism.yaml")
    var now = try folder.load().keepingGone(of: before)
    now = try folder.load().keepingGone(of: now)
    let kept = try #require(now.snapshot.namespaces[.prism])
    #expect(kept.maxStoreBytes == 600 << 20 && kept.allow?.userIDs == [0] && kept.isFileGone)
    #expect(SnapshotDiff(from: before.snapshot, to: now.snapshot).lines[0].hasPrefix("prism: its file is gone"))
    // Without a file before, there is nothing to keep.
    let plain = try folder.load()
    #expect(try folder.load().keepingGone(of: plain).snapshot.namespaces[.prism]?.isFileGone == false)
  }

  @Test("prism itself can't be retired")
  func prism() throws {
    let folder = try ConfigurationFolder(["prismd.yaml": "", "namespaces.d/prism.yaml": "retired: true\n"])
    #expect(
      folder.faultLines() == [
        "namespaces.d/prism.yaml:1: retired: is true, but prism is always configured; remove the key"
      ])
  }
}
