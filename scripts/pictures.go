//go:build ignore

// Draws pages of a running development server as PNG files, for the documents and to compare two versions. Each page is
// drawn in the widths 360 and 1280 and in both themes, or in one of them.
//
//	go run scripts/pictures.go -sign-in LINK -to FOLDER [-width 1280] [-theme light] /ops /ops/payments
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

func main() {
	link := flag.String("sign-in", "", "link that the server prints")
	folder := flag.String("to", ".", "folder of the pictures")
	width := flag.Int64("width", 0, "one width in pixels; 0: 360 and 1280")
	theme := flag.String("theme", "", "light or dark; empty: both")
	height := flag.Int64("height", 0, "height of the picture in pixels; 0: the whole page")
	browser := flag.String("chromium", os.Getenv("MAKOLA_TEST_CHROMIUM"), "path of Chromium")
	flag.Parse()
	at, err := url.Parse(*link)
	if err != nil || at.Host == "" || flag.NArg() == 0 {
		log.Fatal("pictures: give -sign-in LINK and the paths of pages")
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.Flag("hide-scrollbars", true))
	if *browser != "" {
		options = append(options, chromedp.ExecPath(*browser))
	}
	if os.Geteuid() == 0 {
		options = append(options, chromedp.NoSandbox) // Chromium refuses root otherwise
	}
	allocator, stop := chromedp.NewExecAllocator(context.Background(), options...)
	defer stop()
	ctx, cancel := chromedp.NewContext(allocator)
	defer cancel()
	ctx, cancel = context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	run := func(actions ...chromedp.Action) {
		if err := chromedp.Run(ctx, actions...); err != nil {
			log.Fatal("pictures: ", err)
		}
	}
	run(chromedp.Navigate(*link), chromedp.Click("#sign-in", chromedp.ByQuery), chromedp.WaitVisible(".bar", chromedp.ByQuery), chromedp.Sleep(time.Second))
	widths, themes := []int64{360, 1280}, []string{"light", "dark"}
	if *width != 0 {
		widths = []int64{*width}
	}
	if *theme != "" {
		themes = []string{*theme}
	}
	for _, path := range flag.Args() {
		for _, w := range widths {
			for _, colours := range themes {
				var png []byte
				draw := chromedp.Action(chromedp.FullScreenshot(&png, 100))
				if *height != 0 {
					draw = chromedp.CaptureScreenshot(&png)
				}
				run(chromedp.EmulateViewport(w, max(*height, 900)), emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: colours}}),
					chromedp.Navigate(at.Scheme+"://"+at.Host+path), draw)
				name, _, _ := strings.Cut(strings.Trim(path, "/"), "?")
				file := filepath.Join(*folder, fmt.Sprintf("%s-%d-%s.png", strings.ReplaceAll(name, "/", "-"), w, colours))
				if err := os.WriteFile(file, png, 0o644); err != nil {
					log.Fatal("pictures: ", err)
				}
			}
		}
	}
}
