import PrismProtocol
import Testing

@testable import PrismCollector

/// Names and places of frames that `Tests/ClientTests/test_fleet.py` met in optimized builds of five languages.
@Suite struct CrashPlaceTests {
  @Test(
    "a frame has the file and the line that its reporter wrote",
    arguments: [
      ("#0 0x55d1 in total (n=1) at shop.c:41", "shop.c", 41),
      ("    at Cart.total (file:///srv/cart.mjs:7:3)", "/srv/cart.mjs", 7),
      ("  File \"/srv/app.py\", line 9, in total", "/srv/app.py", 9),
      ("goroutine 1 [running]:\nmain.total(...)\n\t/srv/cart.go:12 +0x1d", "/srv/cart.go", 12),
      ("   0: shop::total\n             at ./src/main.rs:4:5", "./src/main.rs", 4),
      ("\tat com.acme.Cart.total(Cart.java:3)", "Cart.java", 3),
    ])
  func place(text: String, file: String, line: Int) {
    let frame = CrashStack.frames(of: text).first
    #expect(frame?.file == file && frame?.line == line)
  }

  @Test(
    "names of Rust that elfutils took apart in part are those of other builds",
    arguments: [
      ("till::Cart$LT$T$GT$::total::h130644be82fd370d", "till::Cart::total"),
      (
        "_$LT$alloc..vec..Vec$LT$T$C$A$GT$$u20$as$u20$core..ops..index..Index$LT$I$GT$$GT$::index::h3794217fa1760d17",
        "alloc::vec::Vec::index"
      ),
      ("<usize as core::slice::index::SliceIndex<[T]>>::index", "usize::index"),
    ])
  func escapes(name: String, plain: String) { #expect(CrashName.plain(name[...]) == plain) }

  @Test("a failure of Swift's runtime that is inlined into a function is no part of the key")
  func runtimeFailure() {
    let failure = "Swift runtime failure: Unexpectedly found nil while unwrapping an Optional value"
    let frames = [failure, "till.Stock.take"].map {
      CrashFrame(SymbolName(function: $0), at: CrashFrame(module: "till", offset: 7), isInline: false)
    }
    #expect(CrashFingerprint.parts(frames) == ["till.Stock.take"])
  }
}
